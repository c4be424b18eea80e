// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	program := flags.String("program", "cmd/atoll-gateway", "the folder of the program, from the root of the repository")
	arch := flags.String("arch", "amd64", "the architecture: amd64 or arm64")
	out := flags.String("out", "", "the folder to write the image to; it must not exist")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() > 0 {
		return errors.New("-out is missing, or there are other arguments; accepted: -program FOLDER -arch ARCHITECTURE -out FOLDER")
	}
	binary, err := compile(ctx, *program, *arch)
	if err != nil {
		return err
	}
	image, err := assemble(*program, *arch, binary)
	if err != nil {
		return err
	}
	if err := write(*out, image); err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, digest)
	return err
}
