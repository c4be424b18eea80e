// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
)

// The peers are probed at the interval of the configuration.
func TestProbeInterval(t *testing.T) {
	s := &config.Source{ProbeInterval: &metav1.Duration{Duration: 3 * time.Second}}
	require.Equal(t, 3*time.Second, ringOptions(s, nil).Probe.Interval)
}
