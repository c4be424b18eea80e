// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

func TestNoOrphans(t *testing.T) {
	planetest.SkipShort(t)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), orphanHelper+"="+t.TempDir())
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var pids []int
	require.NoError(t, json.NewDecoder(stdout).Decode(&pids))
	require.Len(t, pids, 2)

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	planetest.Eventually(t, 30*time.Second, "the processes end with the one that started them", func(context.Context) error {
		for _, pid := range pids {
			if !gone(pid) {
				return errors.New("a process still runs")
			}
		}
		return nil
	})
}
