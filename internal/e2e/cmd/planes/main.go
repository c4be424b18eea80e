// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command planes starts real control planes on loopback and writes a kubeconfig for each. It stops
// the planes when COMMAND ends, or when the program planes is interrupted.
//
//	planes [-n N] [-dir DIR] [-controllers] [-pods [-nodes N]] [-upstream] [-- COMMAND ARGS...]
//
// The planes are eu-west, us-east, ap-south, peer-4 and so on. With -upstream they are cluster-1,
// cluster-2 and so on, and one called upstream, which has neither controllers nor built-in
// workloads and accepts any type. Their kubeconfigs are DIR/NAME.kubeconfig.
//
// In ARGS, the argument {kubeconfigs} stands for "-kubeconfig NAME=PATH" once per plane. The
// environment variable ATOLL_KUBECONFIGS of COMMAND also lists the planes, as NAME=PATH,NAME=PATH.
// The exit code is that of COMMAND; go run turns each code other than 0 into 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
)

// usageCode is the exit code for wrong arguments, the same as that of package flag.
const usageCode = 2

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], os.Stderr)
	stop()
	os.Exit(code)
}

// settings are the flags and arguments of the command line.
type settings struct {
	n                 int
	dir               string
	controllers, pods bool
	nodes             int
	upstream          bool
	command           []string
}

func run(ctx context.Context, args []string, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return usageCode
	}
	code, err := s.run(ctx, stderr)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "planes:", err)
		return max(code, 1)
	}
	return code
}

func parse(args []string, stderr io.Writer) (*settings, error) {
	s := &settings{}
	flags := flag.NewFlagSet("planes", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&s.n, "n", 3, "how many planes to start")
	flags.StringVar(&s.dir, "dir", "", "directory for the kubeconfigs; empty means a temporary one")
	flags.BoolVar(&s.controllers, "controllers", false, "also run kube-controller-manager and kube-scheduler")
	flags.BoolVar(&s.pods, "pods", false, "also run KWOK with nodes, so that pods run; implies -controllers")
	flags.IntVar(&s.nodes, "nodes", 1, "how many nodes each plane has with -pods")
	flags.BoolVar(&s.upstream, "upstream", false, "also start an upstream for clusters, without controllers and built-in workloads; the others are called cluster-1 and so on")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	s.command = flags.Args()
	if s.n < 1 || s.nodes < 1 {
		err := fmt.Errorf("-n is %d and -nodes is %d: want at least 1 of each", s.n, s.nodes)
		_, _ = fmt.Fprintln(stderr, "planes:", err)
		return nil, err
	}
	return s, nil
}

// planes returns the options of all planes.
func (s *settings) planes() (all []plane.Options) {
	if s.upstream {
		all = append(all, plane.Upstream())
	}
	for i, name := range plane.Names(s.n) {
		if s.upstream {
			name = fmt.Sprintf("cluster-%d", i+1)
		}
		o := plane.Options{Name: name, Controllers: s.controllers, Pods: s.pods}
		if s.pods {
			o.Nodes = s.nodes
		}
		all = append(all, o)
	}
	return all
}

// run starts the planes, then runs the command or waits for ctx to end, and always stops the
// planes.
func (s *settings) run(ctx context.Context, stderr io.Writer) (code int, err error) {
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "atoll-planes-"); err != nil {
			return 1, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	}
	options := s.planes()
	_, _ = fmt.Fprintf(stderr, "planes: starting %d control plane(s)\n", len(options))
	begin := time.Now()
	planes, err := plane.StartAll(ctx, options...)
	if err != nil {
		return 1, err
	}
	defer func() {
		err = errors.Join(err, plane.StopAll(context.WithoutCancel(ctx), planes...))
		_, _ = fmt.Fprintln(stderr, "planes: stopped")
	}()
	files, err := writeKubeconfigs(s.dir, planes)
	if err != nil {
		return 1, err
	}
	_, _ = fmt.Fprintf(stderr, "planes: ready after %s\n", time.Since(begin).Round(100*time.Millisecond))
	for i, p := range planes {
		_, _ = fmt.Fprintf(stderr, "planes: %-10s %s  kubeconfig %s  logs %s\n", p.Name(), p.Server(), files[i].path, p.Logs())
	}
	if len(s.command) > 0 {
		return runCommand(ctx, s.command, files)
	}
	_, _ = fmt.Fprintln(stderr, "planes: interrupt (Ctrl-C) to stop them")
	<-ctx.Done()
	return 0, nil
}
