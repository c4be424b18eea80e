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
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	version := flags.String("version", "", "the version, such as v0.4.0")
	out := flags.String("out", "", "the folder to write to; it must be empty or not exist")
	commit := flags.String("commit", "HEAD", "the commit to release")
	programs := flags.String("programs", "atollctl,atoll-gateway,atoll-manager", "the programs, folders of cmd")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64", "the systems and architectures")
	modules := flags.Bool("modules", false, "write the modules and their tags only, no programs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() > 0 {
		return errors.New("-out is missing, or there are other arguments; accepted: -version VERSION -out FOLDER [-commit COMMIT] [-programs NAMES] [-platforms OS/ARCH,...] [-modules]")
	}
	if semver.Canonical(*version) != *version || *version == "" || semver.Major(*version) > "v1" {
		return fmt.Errorf("-version %q is not a version of this module, such as v0.4.0", *version)
	}
	dir, err := filepath.Abs(*out)
	if err != nil {
		return err
	}
	if err := create(dir); err != nil {
		return err
	}
	r, err := prepare(ctx, *commit, *version, dir)
	if err != nil {
		return err
	}
	if !*modules {
		if err := r.build(ctx, strings.Split(*programs, ","), strings.Split(*platforms, ",")); err != nil {
			return err
		}
	}
	fmt.Fprintf(stdout, "%s is in %s\npublish it: git -C %s push REMOTE%s\n", *version, dir, filepath.Join(dir, sourceFolder), refs(r.modules, *version))
	return nil
}

// create makes the folder, and fails if it has files.
func create(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files, err := os.ReadDir(dir)
	if err == nil && len(files) > 0 {
		err = fmt.Errorf("%s is not empty", dir)
	}
	return err
}
