//go:build stave_next

package catalog

// This file pretends to be the version after this one: its feature level is one
// higher and it has one kind more. Rolling upgrades, mixed clusters and what an
// older build does with an entry it does not know are tested with it; it is never
// shipped.

// CurrentLevel is the feature level of this build.
const CurrentLevel FeatureLevel = 2

// KindNextMarker is the kind that only this build knows.
const KindNextMarker Kind = 0x5f

// NextMarker writes its text under the key "next".
type NextMarker struct{ Text string }

// Kind implements Command.
func (NextMarker) Kind() Kind { return KindNextMarker }

var _ = func() bool {
	kindNames[KindNextMarker] = "NextMarker"
	return true
}()

// Level returns the feature level a cluster must have reached before a command of
// the kind may enter its log.
func (k Kind) Level() FeatureLevel {
	if k == KindNextMarker {
		return 2
	}
	return 1
}

func (b *Batch) executeNext(cmd Command) (Result, *Error) {
	m, ok := cmd.(NextMarker)
	if !ok {
		return b.unknown(cmd)
	}
	return b.putKV(PutKV{Key: "next", Value: []byte(m.Text)})
}
