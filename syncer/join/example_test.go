// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer/join"
)

// An Approver runs beside the upstream, for example in atoll-manager.
func ExampleNewApprover() {
	upstream, err := region.APIFor(&rest.Config{Host: "https://upstream.example.com:6443"})
	if err != nil {
		log.Fatal(err)
	}
	approver, err := join.NewApprover(upstream, join.ApproverOptions{
		Longest: 24 * time.Hour,
		Observer: &join.Observer{Denied: func(_ context.Context, e join.DecideEvent) {
			log.Printf("%s asked for the certificate of %s: %s", e.Requester, e.Target, e.Message)
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a program calls it at its end
	fmt.Println(approver.Start(ctx))
	// Output: <nil>
}

// A Renewer runs beside the syncer of a cluster. Here the cluster has not got a token yet.
func ExampleNewRenewer() {
	dir, err := os.MkdirTemp("", "join-")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	renewer, err := join.NewRenewer(join.RenewerOptions{
		Target: "my-cluster", Token: filepath.Join(dir, "token"), File: filepath.Join(dir, "upstream.kubeconfig"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = renewer.Step(context.Background())
	fmt.Println(errors.Is(err, join.ErrDenied), err != nil)
	// Output: false true
}
