// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
)

// A command prints the errors that the library logs. It prints the other lines of the library's log
// only with -v.
func TestLogs(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		var errOut bytes.Buffer
		s := &session{errOut: &errOut}
		command := s.root()
		command.SetContext(t.Context())
		s.verbose = verbose
		require.NoError(t, s.run(func(ctx context.Context, _ []string) error {
			log := logr.FromContextOrDiscard(ctx)
			log.Error(errors.New("disk full"), "Routes were not saved")
			log.Info("Peer's health changed", "peer", "eu-west")
			return nil
		})(command, nil))
		require.Contains(t, errOut.String(), "disk full")
		require.Equal(t, verbose, bytes.Contains(errOut.Bytes(), []byte("peer=eu-west")), errOut.String())
	}
}
