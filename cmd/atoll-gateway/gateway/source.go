// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/central"
)

// newRing makes the source, with its cache, and the ring.
func (g *Gateway) newRing(context.Context) (err error) {
	s := &g.config.Source
	trust := region.Trust{Exec: s.ExecPlugins}
	if g.source, err = g.newSource(s, trust); err != nil {
		return err
	}
	if s.CacheDirectory != "" {
		path := filepath.Join(s.CacheDirectory, "peers.json")
		if g.kept, err = region.Keep(g.source, path, region.KeepOptions{Wait: s.CacheWait.Duration, Trust: trust}); err != nil {
			return fmt.Errorf("source.cacheDirectory: %w", err)
		}
		g.source = g.kept
	}
	if g.ring, err = region.NewRing(g.source, ringOptions(s, g.events.Region(nil))); err != nil {
		return err
	}
	g.parts = append(g.parts, g.ring.Start)
	return nil
}

func ringOptions(s *config.Source, observer *region.Observer) region.Options {
	return region.Options{Observer: observer, Probe: region.ProbeOptions{Interval: s.ProbeInterval.Duration}}
}

func (g *Gateway) newSource(s *config.Source, trust region.Trust) (source region.Source, err error) {
	switch {
	case s.File != "":
		if source, err = region.FromFile(s.File, trust); err != nil {
			return nil, fmt.Errorf("source.file: %w", err)
		}
	case s.Directory != "":
		if source, err = region.FromDir(s.Directory, trust); err != nil {
			return nil, fmt.Errorf("source.directory: %w", err)
		}
	default:
		if source, err = centralSource(s.Central, trust); err != nil {
			return nil, fmt.Errorf("source.central: %w", err)
		}
	}
	return source, nil
}

// centralSource reads the peers of a central plane. The plane itself, as the Peer local, is reached in the same way.
func centralSource(c *config.Central, trust region.Trust) (region.Source, error) {
	plane, err := planeConfig(c.KubeconfigFile)
	if err != nil {
		return nil, err
	}
	api, err := region.APIFor(plane)
	if err != nil {
		return nil, err
	}
	local, err := region.FromConfig(plane)
	if err != nil {
		return nil, err
	}
	return central.New(api, central.Options{Namespace: c.Namespace, Local: local, Trust: trust})
}

// planeConfig returns the configuration for a plane, without a client-side rate limit: of the kubeconfig, or of the plane
// in whose Pod the program runs.
func planeConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("kubeconfigFile is not set, and the gateway runs in no Pod: %w", err)
		}
		config.QPS = -1
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfigFile: %w", err)
	}
	config.QPS = -1
	return config, nil
}

// keptSince returns since when the peers come from the cache, if they do.
func (g *Gateway) keptSince() (time.Time, bool) {
	if g.kept == nil {
		return time.Time{}, false
	}
	return g.kept.Since()
}
