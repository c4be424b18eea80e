// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command atollctl is Atoll from a shell: it adds and removes ServiceClusters
// and Accounts in all peers or in none, finishes what an earlier run left behind
// and audits the peers. Installed under the name kubectl-atoll it is the plugin
// "kubectl atoll".
package main

import (
	"context"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/atoll-dev/atoll/examples/atollctl/internal/command"
	"github.com/atoll-dev/atoll/internal/ending"
)

func main() {
	klog.SetLogger(logr.Discard()) // what client-go has to say is in the errors that it returns
	ctx := ending.Context(context.Background())
	os.Exit(command.Run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr))
}
