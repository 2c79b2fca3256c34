package testproc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// Requests of ioctl on a file system.
const (
	fiFreeze     = 0xc0045877
	fiThaw       = 0xc0045878
	ext4Shutdown = 0x8004587d
	// noLogFlush drops what is in memory, the journal's too, as a power loss does.
	noLogFlush = 2
)

// disk is an ext4 file system of its own in an image file. What was not synced
// is in the kernel's memory alone, and powerLoss throws that away.
type disk struct {
	t          *testing.T
	image, dir string
	mounted    bool
}

// newDisk makes an image and mounts it.
func newDisk(t *testing.T, megabytes int) *disk {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting an image needs root")
	}
	dir := t.TempDir()
	d := &disk{t: t, image: filepath.Join(dir, "image"), dir: filepath.Join(dir, "mount")}
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"truncate", "-s", fmt.Sprint(megabytes, "M"), d.image}, {"mkfs.ext4", "-q", d.image}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%s: %v: %s", args[0], err, out)
		}
	}
	if out, err := exec.Command("mount", "-o", "loop", d.image, d.dir).CombinedOutput(); err != nil {
		t.Skipf("mount of an image: %v: %s", err, out)
	}
	d.mounted = true
	t.Cleanup(d.unmount)
	return d
}

func (d *disk) mount() {
	d.t.Helper()
	if out, err := exec.Command("mount", "-o", "loop", d.image, d.dir).CombinedOutput(); err != nil {
		d.t.Fatalf("mount %s: %v: %s", d.image, err, out)
	}
	d.mounted = true
}

func (d *disk) unmount() {
	if !d.mounted {
		return
	}
	for range 500 { // a process that was killed gives its files back in a moment
		if err := syscall.Unmount(d.dir, 0); err == nil {
			d.mounted = false
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	d.t.Errorf("%s is still in use", d.dir)
}

func (d *disk) ioctl(req uintptr, arg uint32) {
	d.t.Helper()
	f, err := os.Open(d.dir)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), req, uintptr(unsafe.Pointer(&arg))); errno != 0 {
		d.t.Fatalf("ioctl %x on %s: %v", req, d.dir, errno)
	}
}

// powerLoss stops the file system at once: nothing that was not synced reaches
// the image any more.
func (d *disk) powerLoss() { d.ioctl(ext4Shutdown, noLogFlush) }

// freeze makes every write hang until thaw.
func (d *disk) freeze() { d.ioctl(fiFreeze, 0) }
func (d *disk) thaw()   { d.ioctl(fiThaw, 0) }

// fill takes all space and returns what frees it.
func (d *disk) fill() (free func()) {
	d.t.Helper()
	path := filepath.Join(d.dir, "ballast")
	f, err := os.Create(path)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, block := range []int{1 << 20, 4 << 10} {
		for buf := make([]byte, block); err == nil; {
			if _, werr := f.Write(buf); werr != nil {
				break
			}
		}
	}
	_ = f.Close()
	return func() {
		if err := os.Remove(path); err != nil {
			d.t.Error(err)
		}
	}
}
