// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gateway serves many regions at one address, over TLS. kubectl and any client of
// Kubernetes can use a region through it, at /regions/NAME.PROVIDER, or all regions as one, at
// /regions/*, as the user of the token that they send.
//
//	go run ./examples/gateway                                             # two API servers in memory, and sample users
//	go run ./examples/gateway -peers peers.yaml -users users.csv -cert tls.crt -key tls.key
//
// users.csv has lines of token,name,uid,"group,group", as kube-apiserver's --token-auth-file does.
// The region's own RBAC decides what a user may do. The gateway's credentials only need the right
// to impersonate those users.
//
// It serves until it is interrupted. The exit code is 0 then, otherwise 1. Begin reading at
// gateway.go, which has the code to copy.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"

	"github.com/atoll-dev/atoll/internal/ending"
	"github.com/atoll-dev/atoll/router/proxy"
)

// options holds the flags.
type options struct {
	listen, peers, users string
	certificate, key     string
	operators            string
	limits               proxy.Limits
	qps                  float64
}

func main() {
	ctx := ending.Context(context.Background())
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8443", "the address to serve at")
	flags.StringVar(&o.peers, "peers", "", "the file that lists peers, their kubeconfigs and regions; empty: two in memory")
	flags.StringVar(&o.users, "users", "", "the file that lists tokens; empty, with peers in memory: alice and bob")
	flags.StringVar(&o.certificate, "cert", "", "the certificate to serve with; empty: one made for this run")
	flags.StringVar(&o.key, "key", "", "its key")
	flags.StringVar(&o.operators, "operators", "", "the group whose users may go to /peers/NAME; empty: none")
	flags.IntVar(&o.limits.Requests, "max-requests", 400, "requests under way that are neither watches, logs nor streams; one user, or one region, gets at most half")
	flags.IntVar(&o.limits.RequestsPerRegion, "max-requests-per-region", 100, "requests under way to one region; one user gets at most half, and so do reads of all regions")
	flags.IntVar(&o.limits.RequestsPerCaller, "max-requests-per-user", 100, "requests under way by one user, over all regions")
	flags.IntVar(&o.limits.StreamsPerCaller, "max-streams-per-user", 1000, "watches, logs and streams that one user may have open")
	flags.IntVar(&o.limits.Waiting, "max-waiting", 1000, "requests beyond these bounds that wait for a place; -1: none. More are answered with 429")
	flags.DurationVar(&o.limits.Wait, "max-wait", 10*time.Second, "how long such a request waits before it is answered with 429")
	flags.DurationVar(&o.limits.Answer, "answer-timeout", 70*time.Second, "how long a region may send nothing before 504; API servers themselves take up to 60 s")
	flags.Float64Var(&o.qps, "region-qps", -1, "requests per second to one region, of all users in one queue; -1: no limit but the bounds above and the region's own")
	if err := flags.Parse(args); err != nil {
		return err
	}
	logger := slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.Level(-1)}) // -1: also log each request
	return gateway(logr.NewContext(ctx, logr.FromSlogHandler(logger)), o, stdout)
}
