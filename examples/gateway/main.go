// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gateway serves many regions at one address, over TLS: kubectl and any client of Kubernetes goes through it to a
// region, at /regions/NAME.PROVIDER, or reads all of them as one, at /regions/*, as the user whose token it brings.
//
//	go run ./examples/gateway                                             # two API servers in memory, and users made up
//	go run ./examples/gateway -peers peers.yaml -users users.csv -cert tls.crt -key tls.key
//
// users.csv has lines of token,name,uid,"group,group", as kube-apiserver's --token-auth-file does. What a user may do, the
// region's own RBAC says; the gateway's credentials need no right but to impersonate those users.
//
// It serves until it is interrupted. The exit code is 0 then, otherwise 1. Begin reading at gateway.go: that is what
// embedding takes. merged.go is what all regions as one take.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// options are the flags.
type options struct {
	listen, peers, users string
	certificate, key     string
	operators            string
	partial              bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	logger := funcr.New(func(_, line string) { _, _ = fmt.Fprintln(os.Stderr, line) }, funcr.Options{LogTimestamp: true, Verbosity: 1})
	if err := run(logr.NewContext(ctx, logger), os.Args[1:], os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	var o options
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8443", "the address to serve at")
	flags.StringVar(&o.peers, "peers", "", "the file that lists peers, their kubeconfigs and regions; empty: two in memory")
	flags.StringVar(&o.users, "users", "", "the file that lists tokens; empty, with peers in memory: alice and bob")
	flags.StringVar(&o.certificate, "cert", "", "the certificate to serve with; empty: one made for this run")
	flags.StringVar(&o.key, "key", "", "its key")
	flags.StringVar(&o.operators, "operators", "", "the group whose users may go to /peers/NAME; empty: nobody")
	flags.BoolVar(&o.partial, "partial", false, "answer lists over all regions also if some do not answer, with a warning for each")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return gateway(ctx, o, stdout)
}
