// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package split_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/logtest"
)

// A process that has just started can be stopped in an orderly way. Its API servers do not answer.
func TestAProcessThatHasJustStartedIsStopped(t *testing.T) {
	dir := t.TempDir()
	for _, name := range append([]string{"upstream"}, clusterNames...) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".kubeconfig"), logtest.Kubeconfig(), 0o600))
	}
	m := newManager(t, dir, dir, true)
	for range 5 {
		m.stop(t)
		m.start(t)
	}
}
