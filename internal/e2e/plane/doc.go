// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plane runs real Kubernetes control planes on loopback: etcd and kube-apiserver, on
// request kube-controller-manager and kube-scheduler, and KWOK, which simulates nodes and running
// pods.
//
// A plane is ready in a few seconds. Every connection to it is TLS with a certificate that the
// plane's own authority signed, and every kubeconfig holds that authority. Requests are authorized
// by RBAC.
//
// Guaranteed: after Stop no process and no port is left; on Linux that also holds when the process
// that started the plane is killed. A plane keeps its port from Start to Stop, across Kill and
// Restart.
//
// Not guaranteed: durability. etcd does not wait for the disk, so the data of a plane survives the
// end of its processes, but not a crash of the machine.
//
// A plane without controllers is only an API: no garbage collection, no automatic service accounts,
// and a deleted namespace stays Terminating.
package plane
