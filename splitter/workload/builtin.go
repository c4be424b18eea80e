// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed builtin/*.yaml
var files embed.FS

// Builtin returns the declarations of the types of Kubernetes: CronJobs, DaemonSets, Deployments,
// HorizontalPodAutoscalers, Jobs, ReplicaSets, ReplicationControllers and StatefulSets. It does no I/O.
func Builtin() []*Type {
	paths, err := fs.Glob(files, "builtin/*.yaml")
	if err != nil {
		panic(fmt.Sprintf("workload: embedded declarations: %v", err)) // impossible: the pattern is constant
	}
	var all []*Type
	for _, path := range paths {
		all = append(all, read(path))
	}
	return all
}

// BuiltinType returns the declaration of the type of Kubernetes that has this resource, such as deployments; nil for
// other types. It does no I/O.
func BuiltinType(resource string) *Type {
	path := "builtin/" + resource + ".yaml"
	if _, err := fs.Stat(files, path); err != nil {
		return nil
	}
	return read(path)
}

// read returns an embedded declaration. A test reads all of them, so none has a fault.
func read(path string) *Type {
	data, err := files.ReadFile(path)
	if err != nil {
		panic(fmt.Sprintf("workload: embedded declaration %s: %v", path, err))
	}
	objects, err := Decode(data)
	if err != nil || len(objects) != 1 {
		panic(fmt.Sprintf("workload: embedded declaration %s: %v", path, err))
	}
	t, err := Compile(objects[0].Spec)
	if err != nil {
		panic(fmt.Sprintf("workload: embedded declaration %s: %v", path, err))
	}
	return t
}

// NotBuiltin returns an error if the type is one of Kubernetes whose declaration is built in. Its objects must mean the
// same in every installation.
func (t *Type) NotBuiltin() error {
	if own := BuiltinType(t.spec.Resource.Resource); own != nil && own.spec.Resource.Group == t.spec.Resource.Group {
		return fmt.Errorf("spec.resource: %s is built in; accepted: a type without a built-in declaration", t.Resource().GroupResource())
	}
	return nil
}
