// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/atoll-dev/atoll/region"
)

// kubeconfig is the kubeconfig of a peer. This process uses it, and passes it to the process that
// it kills.
type kubeconfig struct {
	Peer region.PeerName
	Data []byte
	own  bool // given by the user: the API server outlives the program
}

// kubeconfigs is the value of the flag -kubeconfig, in the order of the command
// line.
type kubeconfigs []kubeconfig

// String returns the default that package flag prints.
func (k *kubeconfigs) String() string { return "" }

// Set parses one NAME=PATH.
func (k *kubeconfigs) Set(value string) error {
	name, path, found := strings.Cut(value, "=")
	if !found || name == "" || path == "" {
		return errors.New("want NAME=PATH, the peer's name and the path of its kubeconfig")
	}
	peer := region.PeerName(name)
	if err := peer.Validate(); err != nil {
		return err
	}
	if slices.ContainsFunc(*k, func(other kubeconfig) bool { return other.Peer == peer }) {
		return fmt.Errorf("peer %s is given twice: each needs a name of its own", peer)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if _, err := region.ParseKubeconfig(data, region.Trust{}); err != nil {
		return err
	}
	*k = append(*k, kubeconfig{Peer: peer, Data: data, own: true})
	return nil
}

// parse parses the arguments. Before it returns an error, it prints the cause.
func parse(args []string, stderr io.Writer) (kubeconfigs, error) {
	var files kubeconfigs
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Var(&files, "kubeconfig", "`NAME=PATH` of a real peer; give two or more. None: three API servers in memory")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q: only flags are taken", flags.Arg(0))
	case len(files) == 1:
		err = fmt.Errorf("flag -kubeconfig: only %s is given: a ring has at least two peers", files[0].Peer)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		flags.Usage()
	}
	return files, err
}
