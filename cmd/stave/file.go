package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// writeFile fills a new file by way of a temporary one beside it: path either
// holds everything that f wrote, durably, or what it held before.
func writeFile(path string, f func(io.Writer) error) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*")
	if err != nil {
		return local("create %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	if err := f(diskWriter{tmp}); err != nil {
		return errors.Join(err, tmp.Close())
	}
	if err := errors.Join(tmp.Sync(), tmp.Close()); err != nil {
		return local("write %s: %w", path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return local("write %s: %w", path, err)
	}
	return nil
}

// diskWriter marks errors of writing as this machine's own.
type diskWriter struct{ w io.Writer }

func (d diskWriter) Write(p []byte) (int, error) {
	n, err := d.w.Write(p)
	if err != nil {
		return n, local("write: %w", err)
	}
	return n, nil
}
