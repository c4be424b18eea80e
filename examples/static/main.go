// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command static shows Atoll without a central plane: a file lists the peers, and the loops of the
// library run inside this program, each as a Start(ctx) that blocks.
//
//	go run ./examples/static
//
// Three API servers in the memory of the program are the peers. An Account is added to all of them,
// an object of the Account is restored after its deletion, a region is claimed once, and one peer
// is lost, comes back, and leaves.
//
// The exit code is 0 if every step succeeded, otherwise 1. Begin reading at loops.go, which has the
// code to copy.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"

	"github.com/atoll-dev/atoll/internal/ending"
	"github.com/atoll-dev/atoll/region"
)

// limit is the timeout of the story. It takes some seconds.
const limit = 2 * time.Minute

func main() {
	ctx := ending.Context(context.Background())
	logs := flag.Bool("v", false, "show the log lines of the loops on standard error")
	flag.Parse()
	if err := static(logged(ctx, *logs, os.Stderr), os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "static:", err)
		os.Exit(1)
	}
}

// logged returns ctx with the logger of all loops.
func logged(ctx context.Context, logs bool, stderr io.Writer) context.Context {
	log := slog.DiscardHandler
	if logs {
		log = slog.NewTextHandler(stderr, nil)
	}
	return logr.NewContext(ctx, logr.FromSlogHandler(log))
}

// static runs the program.
func static(ctx context.Context, stdout io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dir, err := os.MkdirTemp("", "atoll-static-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	plant, err := build(ctx, dir, "eu-west", "us-east", "ap-south")
	if err != nil {
		return err
	}
	defer plant.close()

	loops, err := newLoops(plant.file, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, loops.journal.Close()) }()
	out := &narrator{w: stdout}
	s := &story{out: out, plant: plant, loops: loops, engaged: map[region.PeerName]bool{}}
	out.say("A file lists the peers, without any other source:")
	out.note("%s", sample)
	// The story runs while the loops run. The loops end with the story.
	return loops.run(ctx, s.engage, s.tell)
}
