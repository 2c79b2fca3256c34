package workload

import (
	"testing"
	"testing/synctest"
	"time"
)

// The gap is the longest pause that ends after the kill, not one before it.
func TestAcks_Gap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a acks
		pause := func(d time.Duration) {
			time.Sleep(d)
			a.add()
		}
		a.add()
		pause(9 * time.Second)
		pause(time.Second)
		killed := time.Now()
		pause(3 * time.Second)
		pause(time.Second)
		if got := a.gap(killed); got != 3*time.Second {
			t.Errorf("gap is %s, want 3s", got)
		}
		if got := a.after(killed.Add(time.Millisecond)); got != 2 {
			t.Errorf("%d acknowledgements after the kill, want 2", got)
		}
	})
}

// A change has reached the crowd with the last watcher that saw it.
func TestCrowd(t *testing.T) {
	var c crowd
	all := c.expect(2)
	c.seen()
	select {
	case <-all:
		t.Fatal("one of two watchers was enough")
	default:
	}
	c.seen()
	<-all
}
