// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command atollctl is the command line of Atoll: it adds and removes ServiceClusters and Accounts
// in all peers or in none, finishes operations that an earlier run left open, and audits the peers.
// Installed as kubectl-atoll it is the plugin "kubectl atoll".
package main

import (
	"context"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/atoll-dev/atoll/cmd/atollctl/internal/command"
	"github.com/atoll-dev/atoll/internal/ending"
)

func main() {
	klog.SetLogger(logr.Discard()) // client-go's errors are returned; its log lines would repeat them
	ctx := ending.Context(context.Background())
	os.Exit(command.Run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr))
}
