// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"errors"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

// definitionsOf returns a func that returns CRDs, compiled once.
func definitionsOf(names ...string) func() (*regiontest.Definitions, error) {
	return sync.OnceValues(func() (*regiontest.Definitions, error) {
		crds := make([]*apiextensionsv1.CustomResourceDefinition, len(names))
		for i, name := range names {
			crd, err := config.CRD(name)
			if err != nil {
				return nil, err
			}
			crds[i] = crd
		}
		return regiontest.Compile(crds...)
	})
}

// serve returns a func that makes servers, each with CRDs and objects. nil means no CRDs.
func serve(of map[string]func() (*regiontest.Definitions, error), manifests map[string][]string) func() (map[string]perturb.Server, error) {
	return func() (map[string]perturb.Server, error) {
		servers, run := map[string]perturb.Server{}, runs.Add(1)
		for name, definitions := range of {
			opts := regiontest.Options{Name: name}
			if definitions != nil {
				types, err := definitions()
				if err != nil {
					return nil, err
				}
				opts.Definitions = types
			}
			s := regiontest.NewServer(opts)
			servers[name] = host(name, s, run)
			for _, manifest := range manifests[name] {
				if err := applyTo(context.Background(), s.Config(), manifest); err != nil {
					return nil, err
				}
			}
		}
		return servers, nil
	}
}

// startAll runs the parts of one program until ctx ends or one of the parts returns. It then ends
// the other parts and waits for all of them.
func startAll(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, len(parts))
	for i, part := range parts {
		wg.Go(func() {
			defer cancel()
			errs[i] = part(ctx)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ringOf returns a ring with fixed peers. The caller must start it.
func ringOf(access perturb.Access, names ...region.PeerName) (*region.Ring, error) {
	var all []region.Peer
	for _, name := range names {
		creds, err := region.FromConfig(access(string(name)))
		if err != nil {
			return nil, err
		}
		all = append(all, region.Peer{Name: name, Credentials: creds})
	}
	source, err := region.FromPeers(all...)
	if err != nil {
		return nil, err
	}
	return region.NewRing(source, region.Options{})
}
