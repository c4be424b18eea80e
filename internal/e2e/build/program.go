// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"time"
)

// The names of the programs that [Programs] knows.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
	KWOK              = "kwok"
)

// program is one executable that the pinned module can build.
type program struct {
	name    string
	pkg     string        // the import path of its main package
	version string        // the module whose version it reports
	usual   time.Duration // how long it takes on two idle cores after those before it
}

// programs is every executable, in the order in which building them shares
// the most compiled packages.
func programs() []program {
	const kubernetes = "k8s.io/kubernetes"
	return []program{
		{Etcd, "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3", 30 * time.Second},
		{APIServer, kubernetes + "/cmd/kube-apiserver", kubernetes, 150 * time.Second},
		{ControllerManager, kubernetes + "/cmd/kube-controller-manager", kubernetes, 30 * time.Second},
		{Scheduler, kubernetes + "/cmd/kube-scheduler", kubernetes, 15 * time.Second},
		{Kubectl, kubernetes + "/cmd/kubectl", kubernetes, 15 * time.Second},
		{KWOK, "sigs.k8s.io/kwok/cmd/kwok", "sigs.k8s.io/kwok", 15 * time.Second},
	}
}
