//go:build !stave_next

package raftnode

// nextDuties are those of the build that follows this one.
func nextDuties() []duty { return nil }
