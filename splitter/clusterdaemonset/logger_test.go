// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdaemonset_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/clusterdaemonset"
)

// The Logger in Options reports the cause of an unreachable API server, even if the context of Start has no logger.
func TestLogger(t *testing.T) {
	lines := logtest.New()
	c, err := clusterdaemonset.New(logtest.Unreachable(t), splitter.StaticClusters("cluster-1"), clusterdaemonset.Options{Logger: lines.Logger()})
	require.NoError(t, err)
	logtest.Run(t, c.Start)
	lines.Await(t, "clusterdaemonset", "connection refused")
}
