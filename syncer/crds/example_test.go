// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer/crds"
)

func ExampleNew() {
	upstream, cluster := regiontest.NewServer(regiontest.Options{}), regiontest.NewServer(regiontest.Options{})
	defer upstream.Close()
	defer cluster.Close()
	crd := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Kind: "Thing"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
		}}},
	}}
	crd.Name = "things.example.com"
	if err := cluster.AddCRD(crd); err != nil {
		fmt.Println(err)
		return
	}
	up, err := region.APIFor(upstream.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	down, err := region.APIFor(cluster.Config())
	if err != nil {
		fmt.Println(err)
		return
	}

	c, err := crds.New(crds.Options{
		Upstream: up,
		Targets:  func() []crds.Target { return []crds.Target{{Name: "cluster-1", API: down}} },
		Policy:   crds.Policy{{Group: "example.com", Resource: "*", Direction: crds.Pull}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	states, err := c.Sync(context.Background()) // c.Start repeats this until its context ends
	for _, s := range states {
		fmt.Println(s.Type, s.Side, s.Reason, s.From, err)
	}
	// Output:
	// things.example.com upstream Defined [cluster-1] <nil>
}
