//go:build !stave_failpoints

package failpoint

// Hit does nothing.
func Hit(string) {}
