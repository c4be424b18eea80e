// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights defines the least rights that an API server must grant to each program of this
// module: in a peer, in a central plane, in the upstream of a syncer or in a cluster. The rights
// have no wildcards. The functions are pure.
package rights
