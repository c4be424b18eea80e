// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcdutl pins etcdutl, which restores snapshots of etcd, in the version of the server that
// the parent module pins. It is a module of its own, so that its dependencies do not decide the
// versions of Kubernetes' dependencies.
package etcdutl
