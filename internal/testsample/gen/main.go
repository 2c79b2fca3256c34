// Command gen writes the sample catalog to standard output, or to the file that
// its argument names.
package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/stavedb/stave/internal/testsample"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run makes the whole sample before it touches a file.
func run(args []string) error {
	var b bytes.Buffer
	if err := testsample.Write(&b); err != nil {
		return err
	}
	switch len(args) {
	case 0:
		_, err := os.Stdout.Write(b.Bytes())
		return err
	case 1:
		return os.WriteFile(args[0], b.Bytes(), 0o644)
	}
	return fmt.Errorf("want at most one argument, the file to write, got %d", len(args))
}
