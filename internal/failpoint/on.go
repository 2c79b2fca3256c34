//go:build stave_failpoints

package failpoint

import (
	"sync/atomic"
	"syscall"
)

type armed struct {
	name string
	left atomic.Int64
}

var current atomic.Pointer[armed]

// Arm makes the process end as by kill -9 when the step is reached for the nth
// time, counted from 1.
func Arm(name string, nth int64) {
	a := &armed{name: name}
	a.left.Store(nth)
	current.Store(a)
}

// Hit ends the process if this step is armed and its time has come.
func Hit(name string) {
	if a := current.Load(); a != nil && a.name == name && a.left.Add(-1) == 0 {
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		select {}
	}
}
