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
	Etcdutl           = "etcdutl"
	Prometheus        = "prometheus"
	CertManager       = "cert-manager"

	// AnyGroupAPIServer is kube-apiserver without one check: it accepts CustomResourceDefinitions
	// in groups without a dot, such as apps, as the control plane of the multi-cluster proposal
	// does.
	AnyGroupAPIServer = "kube-apiserver-any-group"
)

// program is one executable that the pinned module can build.
type program struct {
	name    string
	pkg     string        // the import path of its main package
	version string        // the module whose version it reports
	usual   time.Duration // build time on two idle cores, after the builds of the programs that precede it
	edit    *edit         // nil: built unchanged
	folder  string        // folder, in the pinned module, of the module that pins the program; empty: the pinned module
	tags    string        // build tags
}

// programs returns all executables, in the order in which their builds share the most compiled
// packages.
func programs() []program {
	const kubernetes = "k8s.io/kubernetes"
	return []program{
		{name: Etcd, pkg: "go.etcd.io/etcd/server/v3", version: "go.etcd.io/etcd/server/v3", usual: 30 * time.Second},
		{name: APIServer, pkg: kubernetes + "/cmd/kube-apiserver", version: kubernetes, usual: 150 * time.Second},
		{name: AnyGroupAPIServer, pkg: kubernetes + "/cmd/kube-apiserver", version: kubernetes, usual: 30 * time.Second, edit: &edit{
			module: "k8s.io/apiextensions-apiserver", file: "pkg/apis/apiextensions/validation/validation.go",
			old: `len(strings.Split(spec.Group, ".")) < 2`, new: `len(strings.Split(spec.Group, ".")) < 1`,
		}},
		{name: ControllerManager, pkg: kubernetes + "/cmd/kube-controller-manager", version: kubernetes, usual: 30 * time.Second},
		{name: Scheduler, pkg: kubernetes + "/cmd/kube-scheduler", version: kubernetes, usual: 15 * time.Second},
		{name: Kubectl, pkg: kubernetes + "/cmd/kubectl", version: kubernetes, usual: 15 * time.Second},
		{name: KWOK, pkg: "sigs.k8s.io/kwok/cmd/kwok", version: "sigs.k8s.io/kwok", usual: 15 * time.Second},
		{name: Etcdutl, pkg: "go.etcd.io/etcd/etcdutl/v3", version: "go.etcd.io/etcd/etcdutl/v3", usual: 30 * time.Second, folder: "etcdutl"},
		// Without service discovery except by files and HTTP, which would double the time, and without the pages for a browser.
		{name: Prometheus, pkg: "github.com/prometheus/prometheus/cmd/prometheus", version: "github.com/prometheus/prometheus", usual: 100 * time.Second, folder: "prometheus", tags: "remove_all_sd"},
		{name: CertManager, pkg: "github.com/cert-manager/cert-manager/cmd/controller", version: "github.com/cert-manager/cert-manager", usual: 150 * time.Second, folder: "certmanager"},
	}
}
