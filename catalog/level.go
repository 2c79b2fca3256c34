//go:build !stave_next

package catalog

// CurrentLevel is the feature level of this build.
const CurrentLevel FeatureLevel = 1

// Level returns the feature level a cluster must have reached before a command of
// the kind may enter its log. A kind that is added later names a higher one.
func (Kind) Level() FeatureLevel { return 1 }

// executeNext is for the kinds of the build that follows this one.
func (b *Batch) executeNext(cmd Command) (Result, *Error) { return b.unknown(cmd) }
