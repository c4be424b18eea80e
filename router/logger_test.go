// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router"
)

// Options.Logger receives the errors of a Router whose Start gets a context without a logger.
func TestLogger(t *testing.T) {
	lines := logtest.New()
	ring := regiontest.NewRing("eu-west")
	defer ring.Close()
	require.NoError(t, ring.Serve("eu-west", region.Key{Name: "eu-west-1", Provider: "loodse"}))
	routes, err := router.New(ring, router.Options{
		Cache: refusing{}, Logger: lines.Logger(),
	})
	require.NoError(t, err)
	logtest.Run(t, routes.Start)
	lines.Await(t, "router", "Routes were not saved", "disk full")
}

// refusing is a Cache whose Save always fails.
type refusing struct{}

func (refusing) Load() ([]router.CachedRoute, error) { return nil, nil }
func (refusing) Save([]router.CachedRoute) error     { return errors.New("disk full") }
