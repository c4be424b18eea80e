// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

// controller-gen runs once for wal/v1alpha1 and once for the other packages, because fanout/v1alpha1 has aliases of the
// type Operation of wal/v1alpha1. From these aliases, one common run would generate a second version of the CRD of
// Operation.
//
//go:generate sh -c "cd .. && go tool -modfile=tools/go.mod controller-gen object:headerFile=config/boilerplate.go.txt crd:maxDescLen=4096 paths=./wal/v1alpha1 output:crd:dir=config/crd"
//go:generate sh -c "cd .. && go tool -modfile=tools/go.mod controller-gen object:headerFile=config/boilerplate.go.txt crd:maxDescLen=4096 'paths={./fanout/v1alpha1,./region/v1alpha1,./region/master/v1alpha1,./region/operator/v1alpha1,./account/v1alpha1,./syncer/v1alpha1,./splitter/v1alpha1}' output:crd:dir=config/crd"
//go:generate sh -c "go run ./internal/claimschema crd/kubecarrier.io_serviceclusters.yaml > fanout_schema.json && mv fanout_schema.json ../fanout/v1alpha1/fanout_schema.json"
