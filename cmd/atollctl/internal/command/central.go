// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/kubelog"
)

const nameLog = "write --log kube:KUBECONFIG, with the kubeconfig of the central plane"

// open opens the log that commands write: a log in a file, or the shared log in a central plane. If
// the error is nil, the caller must call done.
func (s *session) open(ctx context.Context, create bool, opts wal.Options) (log wal.Log, done func() error, err error) {
	if s.shared != "" {
		log, err := s.openCentral()
		return log, func() error { return nil }, err
	}
	file, err := s.openOwn(ctx, create, opts)
	if err != nil {
		return nil, nil, err
	}
	return file, file.Close, nil
}

// openCentral opens the log in the central plane to which the kubeconfig of --log leads. It does no
// network I/O.
func (s *session) openCentral() (*kubelog.Log, error) {
	path, ok := strings.CutPrefix(s.shared, "kube:")
	if !ok || path == "" {
		return nil, badInput(nameLog, "--log %q names no log", s.shared)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, badInput("", "--log: read kubeconfig: %w", err)
	}
	credentials, err := region.ParseKubeconfig(data, region.Trust{})
	if err != nil {
		return nil, badInput(flatten, "--log: kubeconfig %s: %w", path, err)
	}
	conn, err := region.NewConn(region.Peer{Name: "log", Credentials: credentials}, region.ConnOptions{})
	if err != nil {
		return nil, badInput(flatten, "--log: kubeconfig %s: %w", path, err)
	}
	log, err := kubelog.New(conn, kubelog.Options{Describe: describe})
	if err != nil {
		return nil, badInput("", "--log: %w", err)
	}
	return log, nil
}

// describe returns the action and the object that "kubectl get operations" shows for the entry e.
// Both are empty if e cannot be read.
func describe(e wal.Entry) kubelog.Description {
	about, err := fanout.Describe(e)
	if err != nil {
		return kubelog.Description{}
	}
	return kubelog.Description{Action: about.Action, Object: about.Kind.Kind + " " + strings.TrimPrefix(about.Key.String(), "/")}
}

// ofFile returns an error if --log names a log in a central plane. Commands that need a log file
// call it first.
func (s *session) ofFile() error {
	if s.shared == "" {
		return nil
	}
	return badInput("omit --log; back up a central plane like any cluster", "%w", errNotFile)
}

var errNotFile = errors.New("this command needs a log in a file, and --log names a central plane")
