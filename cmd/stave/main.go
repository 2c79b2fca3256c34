// Command stave runs Stave nodes and talks to them: `stave help` lists the verbs.
//
// Exit codes: 0 done, 1 refused, 2 wrong usage, 3 unavailable (nothing was
// changed), 4 the outcome of a write is unknown.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(start()) }

func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	a := &app{in: os.Stdin, out: os.Stdout, errs: os.Stderr, env: os.LookupEnv}
	return a.run(ctx, os.Args[1:])
}
