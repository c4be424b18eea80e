// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build programs

package etcdutl

import _ "go.etcd.io/etcd/etcdutl/v3"
