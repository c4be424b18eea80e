// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelog_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/kubelog"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// newServer makes a central plane in memory.
func newServer(t testing.TB) *regiontest.Server {
	t.Helper()
	crd, err := config.CRD("operations.fanout.atoll.dev")
	require.NoError(t, err)
	s := regiontest.NewServer(regiontest.Options{Name: "central", CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
	t.Cleanup(s.Close)
	return s
}

func open(t testing.TB, s *regiontest.Server, opts kubelog.Options) *kubelog.Log {
	t.Helper()
	api, err := region.APIFor(s.Config())
	require.NoError(t, err)
	if opts.Timeout == 0 {
		opts.Timeout = 5 * time.Second
	}
	if opts.Grace == 0 {
		opts.Grace = 200 * time.Millisecond
	}
	l, err := kubelog.New(api, opts)
	require.NoError(t, err)
	return l
}

func TestLog(t *testing.T) {
	waltest.Run(t, func(t *testing.T) wal.Log { return open(t, newServer(t), kubelog.Options{}) })
}
