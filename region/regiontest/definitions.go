// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/atoll-dev/atoll/region"
)

// Definitions are CRDs with compiled schemas and rules. Any number of Servers can use the same Definitions. Compile
// them once per test binary, with sync.OnceValue, because compiling takes longer than most tests. They are safe for
// concurrent use.
type Definitions struct {
	crds   []*apiextensionsv1.CustomResourceDefinition
	origin *Server
}

// Compile checks and compiles crds, which must not change afterwards. It returns the error that a server would return
// for an invalid CRD.
func Compile(crds ...*apiextensionsv1.CustomResourceDefinition) (*Definitions, error) {
	origin := NewServer(Options{})
	for _, crd := range crds {
		if err := origin.AddCRD(crd); err != nil {
			return nil, fmt.Errorf("regiontest: Compile: CRD %s: %w", crd.Name, err)
		}
	}
	return &Definitions{crds: crds, origin: origin}, nil
}

// AddDefinitions creates or replaces CRDs and serves their types at once, as AddCRD does.
func (s *Server) AddDefinitions(d *Definitions) error {
	if d == nil {
		return fmt.Errorf("regiontest: AddDefinitions: definitions are nil: make them with Compile")
	}
	for _, crd := range d.crds {
		if s.shareCRD(d.origin, crd) {
			continue
		}
		if err := s.AddCRD(crd); err != nil {
			return fmt.Errorf("regiontest: create CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}

// AddDefinitions creates or replaces the CRDs of d in all servers of the ring. It stops at the first error.
func (r *Ring) AddDefinitions(d *Definitions) error {
	r.mu.Lock()
	servers := maps.Clone(r.servers)
	r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		if err := servers[name].AddDefinitions(d); err != nil {
			return &region.Error{Peer: name, Op: "create CRDs", Err: err}
		}
	}
	return nil
}
