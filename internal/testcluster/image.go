package testcluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// image is a file system of a node's own, on a loop device. Power is lost by
// going on with a copy of the device as it is at one moment: what the node did
// not sync is not in it.
type image struct {
	file, dir string
	copies    int
}

const imageBytes = 1 << 30

func run(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// CanLosePower says why power losses cannot be tried here, or nil.
func CanLosePower() error {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return fmt.Errorf("power loss: %w: wants Linux and root for loop devices", ErrUnsupported)
	}
	for _, tool := range []string{"mkfs.ext4", "mount", "umount", "cp"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("power loss: %w: %w", ErrUnsupported, err)
		}
	}
	return nil
}

// mountImage makes a file system and mounts it on dir.
func mountImage(file, dir string) (*image, error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(imageBytes), f.Close(), os.MkdirAll(dir, 0o755)); err != nil {
		return nil, err
	}
	if err := run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1", file); err != nil {
		return nil, err
	}
	return &image{file: file, dir: dir}, run("mount", "-o", "loop", file, dir)
}

// copyNow copies the device as it is. The writer must stand still.
func (i *image) copyNow() (string, error) {
	i.copies++
	to := fmt.Sprintf("%s.%d", strings.TrimSuffix(i.file, filepath.Ext(i.file)), i.copies)
	return to, run("cp", "--sparse=always", i.file, to)
}

// swap goes on with a copy. Nobody may use the directory.
func (i *image) swap(to string) error {
	if err := run("umount", i.dir); err != nil {
		return err
	}
	old := i.file
	i.file = to
	return errors.Join(os.Remove(old), run("mount", "-o", "loop", to, i.dir))
}

func (i *image) close() error { return run("umount", i.dir) }

// keep copies what is in the file system to where it stays after close.
func (i *image) keep(dir string) error { return run("cp", "-a", "--sparse=always", i.dir+"/.", dir) }

func (p *proc) powerLoss(id string) error {
	x, err := p.get(id)
	if err != nil {
		return err
	}
	img := p.images[id]
	if img == nil {
		if err := CanLosePower(); err != nil {
			return err
		}
		return fmt.Errorf("power loss: %w: the cluster was made without OwnDisks", ErrUnsupported)
	}
	if err := x.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	copied, err := img.copyNow()
	if err := errors.Join(err, p.kill(id)); err != nil {
		return err
	}
	return img.swap(copied)
}
