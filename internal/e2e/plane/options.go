// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Options describe a plane. The zero value is an API server with only etcd.
type Options struct {
	// Name is the name of the plane in messages, in kubeconfigs and in the name
	// of its directory: a DNS-1123 label. Empty means "plane".
	Name string

	// Controllers adds kube-controller-manager and kube-scheduler.
	Controllers bool

	// Pods adds KWOK and one node on which pods run as soon as they are
	// scheduled. It implies Controllers.
	Pods bool

	// Nodes is the number of nodes if Pods is set. Zero means one.
	Nodes int

	// APIServerFlags are added to those of kube-apiserver, such as
	// "--runtime-config=apps/v1=false". If a flag is given twice, the last one
	// counts.
	APIServerFlags []string

	// AnyGroup makes the API server accept CustomResourceDefinitions in groups without a dot, such
	// as apps: the plane runs a build of kube-apiserver without the check for the dot.
	AnyGroup bool

	// Dir holds the data and the logs, and belongs to the caller. Empty means
	// a temporary directory, which Stop removes unless Keep was called.
	Dir string
}

func (o Options) withDefaults() (Options, error) {
	if o.Name == "" {
		o.Name = "plane"
	}
	if problems := validation.IsDNS1123Label(o.Name); len(problems) > 0 {
		return o, fmt.Errorf("options: Name %q: %s", o.Name, strings.Join(problems, "; "))
	}
	if o.Nodes < 0 {
		return o, fmt.Errorf("options: Nodes is %d: want zero or more", o.Nodes)
	}
	if o.Nodes > 0 && !o.Pods {
		return o, errors.New("options: Nodes without Pods: nodes come with Pods only")
	}
	if o.Pods {
		o.Controllers = true
		o.Nodes = max(o.Nodes, 1)
	}
	return o, nil
}

// Upstream returns the options of the plane in the multi-cluster proposal to which clusters are
// attached: no controllers, no built-in workloads, and any type can be defined.
func Upstream() Options {
	return Options{Name: "upstream", AnyGroup: true, APIServerFlags: []string{"--runtime-config=apps/v1=false"}}
}

// Names returns n names of planes: eu-west, us-east, ap-south, then peer-4 and
// so on.
func Names(n int) []string {
	names := []string{"eu-west", "us-east", "ap-south"}
	for i := len(names); i < n; i++ {
		names = append(names, fmt.Sprintf("peer-%d", i+1))
	}
	return names[:max(n, 0)]
}
