// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"fmt"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

func ExampleInstallCRDs() {
	server := regiontest.NewServer(regiontest.Options{})
	defer server.Close()
	api, err := region.APIFor(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	installed, err := config.InstallCRDs(context.Background(), api, config.InstallOptions{
		Groups: []string{"fanout.atoll.dev", "kubecarrier.io"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, crd := range installed {
		fmt.Println(crd.Change, crd.Name)
	}
	// Output:
	// Created operations.fanout.atoll.dev
	// Created peersets.fanout.atoll.dev
	// Created regionclaims.kubecarrier.io
	// Created serviceclusters.kubecarrier.io
}

func ExampleCRD() {
	crd, err := config.CRD("serviceclusters.kubecarrier.io")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(crd.Spec.Group, crd.Spec.Names.Kind, crd.Spec.Scope, crd.Labels[config.SchemaVersionLabel])
	// Output: kubecarrier.io ServiceCluster Namespaced 1
}
