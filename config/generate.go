// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

// wal/v1alpha1 and fanout/v1alpha1 have separate runs: fanout/v1alpha1 has aliases of the type Operation, from which one
// common run would generate a second version of its CRD.
//
//go:generate sh -c "cd .. && go tool -modfile=tools/go.mod controller-gen object:headerFile=config/boilerplate.go.txt crd:maxDescLen=4096 paths=./wal/v1alpha1 output:crd:dir=config/crd"
//go:generate sh -c "cd .. && go tool -modfile=tools/go.mod controller-gen object:headerFile=config/boilerplate.go.txt crd:maxDescLen=4096 'paths={./fanout/v1alpha1,./region/v1alpha1,./region/master/v1alpha1,./region/operator/v1alpha1,./account/v1alpha1,./syncer/v1alpha1,./splitter/v1alpha1}' output:crd:dir=config/crd"
//go:generate sh -c "go run ./internal/claimschema crd/kubecarrier.io_serviceclusters.yaml > fanout_schema.json && mv fanout_schema.json ../fanout/v1alpha1/fanout_schema.json"
