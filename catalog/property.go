package catalog

import (
	"slices"
	"strings"
)

func findProperty(list []Property, key string) (int, bool) {
	return slices.BinarySearchFunc(list, key, func(p Property, k string) int { return strings.Compare(p.Key, k) })
}

// PropertyValue returns the value of a key in a sorted list.
func PropertyValue(list []Property, key string) (string, bool) {
	if i, ok := findProperty(list, key); ok {
		return list[i].Value, true
	}
	return "", false
}

// setProperty returns a new sorted list with the value; the input stays as it is.
func setProperty(list []Property, p Property) []Property {
	i, found := findProperty(list, p.Key)
	out := slices.Clone(list)
	if found {
		out[i] = p
		return out
	}
	return slices.Insert(out, i, p)
}

// resetProperty returns a new list without the key.
func resetProperty(list []Property, key string) []Property {
	i, found := findProperty(list, key)
	if !found {
		return list
	}
	out := slices.Delete(slices.Clone(list), i, i+1)
	if len(out) == 0 {
		return nil
	}
	return out
}

// alterProperties sets, then resets, and checks the bounds. The changes are
// bounded before the work, which is quadratic in them.
func alterProperties(list, set []Property, reset []string) ([]Property, *Error) {
	if n := len(reset); n > MaxProperties {
		return nil, refuseLimit(ErrTooLarge, MaxProperties, uint64(n), "%d properties to reset are above %d", n, MaxProperties)
	}
	set, err := sortedProperties("properties to set", set)
	if err != nil {
		return nil, err
	}
	for _, p := range set {
		list = setProperty(list, p)
	}
	for _, k := range reset {
		list = resetProperty(list, k)
	}
	if len(list) > MaxProperties {
		return nil, refuseLimit(ErrTooLarge, MaxProperties, uint64(len(list)), "%d properties are above %d", len(list), MaxProperties)
	}
	return list, nil
}
