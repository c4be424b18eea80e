// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build programs

// Package programs pins the programs that make up a real control plane.
//
// Nothing imports it: the build tag keeps it out of every build, and go.mod
// beside it pins the versions that the package build compiles. It is a module
// of its own, so that the programs' dependencies do not change the versions of
// the library's dependencies.
//
// To move to another version, change go.mod (the 33 replaces follow
// k8s.io/kubernetes: v1.N.P goes with v0.N.P) and run go mod tidy.
package programs

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
