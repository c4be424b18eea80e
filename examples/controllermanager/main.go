// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command controllermanager runs the loops of cmd/atoll-manager in a manager of controller-runtime, beside the controllers
// of your own.
//
//	go -C examples/controllermanager run . -config manager.yaml
//
// Begin reading at newManager, which has the code to copy. A program without controllers of its own is cmd/atoll-manager.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	runtime "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/atoll-dev/atoll/adapters/controllerruntime"
	"github.com/atoll-dev/atoll/cmd/atoll-manager/config"
	"github.com/atoll-dev/atoll/cmd/atoll-manager/manager"
	"github.com/atoll-dev/atoll/internal/ending"
)

func main() {
	ctx := ending.Context(context.Background())
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "controllermanager:", err)
		os.Exit(1)
	}
}

// newManager returns a manager of controller-runtime that also runs Atoll's loops for the central plane of plane.
func newManager(plane *rest.Config, c *config.Configuration, logger logr.Logger) (runtime.Manager, error) {
	atoll, err := manager.New(c, manager.Options{Identity: os.Getenv("POD_NAME"), Central: plane, Logger: logger})
	if err != nil {
		return nil, err
	}
	// Atoll serves its own health and metrics, at health.address.
	m, err := runtime.New(plane, runtime.Options{Logger: logger, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return nil, err
	}
	return m, m.Add(controllerruntime.Loop(atoll.Start)) // add your own controllers to m, too
}

func run(ctx context.Context, args []string, stderr io.Writer) error {
	path, err := parse(args)
	if err != nil {
		return err
	}
	c, err := config.Load(path)
	if err != nil {
		return err
	}
	logger := logr.FromSlogHandler(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: slog.Level(-c.Log.Level)}))
	log.SetLogger(logger)
	klog.SetLogger(logger)
	plane, err := clientcmd.BuildConfigFromFlags("", c.Central.KubeconfigFile)
	if err != nil {
		return fmt.Errorf("central.kubeconfigFile: %w", err)
	}
	m, err := newManager(plane, c, logger)
	if err != nil {
		return err
	}
	return m.Start(ctx)
}

// successors maps the flags that the program had before to the fields of the configuration.
var successors = map[string]string{
	"kubeconfig": "central.kubeconfigFile", "namespace": "central.namespace", "identity": "identity", "v": "log.level",
	"health-address": "health.address", "metrics-address": "health.address",
}

// parse returns the path of the configuration.
func parse(args []string) (path string, err error) {
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if field, ok := successors[name]; ok && strings.HasPrefix(arg, "-") {
			return "", fmt.Errorf("-%s is now the field %s of the file in -config", name, field)
		}
	}
	flags := flag.NewFlagSet("controllermanager", flag.ContinueOnError)
	flags.StringVar(&path, "config", "", "the configuration, as of cmd/atoll-manager")
	if err := flags.Parse(args); err != nil {
		return "", err
	}
	if path == "" || flags.NArg() > 0 {
		return "", errors.New("-config is missing, or there are other arguments; accepted: -config FILE")
	}
	return path, nil
}
