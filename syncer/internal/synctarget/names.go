// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package synctarget

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Resource is the resource of SyncTargets.
var Resource = v1alpha1.GroupVersion.WithResource("synctargets")

// SyncerManager is the field manager of a syncer's writes downstream. The names of its other field managers begin with
// it.
const SyncerManager = "atoll-syncer"

// Manager is the field manager of writes to SyncTargets.
const Manager = SyncerManager + "-target"

// InstallationPrefix begins the name of each installation, which is also the name of its namespace. Nothing is synced
// into a namespace with this prefix: a pod there can use the rights of the syncer.
const InstallationPrefix = "atoll-syncer-"

// Owner returns the value of the label by which objects downstream belong to a SyncTarget of an upstream.
func Owner(upstream, target string) string { return Digest([]byte(upstream + "/" + target)) }

// Digest returns a hash of data as 26 characters that are valid in a label.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}
