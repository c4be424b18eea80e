// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

const (
	// Group is the group of all clusters that have joined.
	Group = "atoll:clusters"
	// userPrefix begins the user of a cluster.
	userPrefix = "atoll:cluster:"
	// Namespace is the default namespace of the ServiceAccounts of tokens. It must have no other ServiceAccounts.
	Namespace = "atoll-join"
	// fieldManager is the field manager of this package's writes.
	fieldManager = "atoll-join"

	tokenLabel        = "join.atoll.dev/token"
	targetAnnotation  = "join.atoll.dev/target"
	expiresAnnotation = "join.atoll.dev/expires"
	usedAnnotation    = "join.atoll.dev/used-by"
)

var (
	requests = certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests")
	accounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	targets  = v1alpha1.GroupVersion.WithResource("synctargets")
)

// User returns the user of the cluster of a SyncTarget.
func User(target string) string { return userPrefix + target }

// targetOf returns the SyncTarget of a user that User returns.
func targetOf(user string) (string, bool) { return strings.CutPrefix(user, userPrefix) }

// accountOf returns the name of the ServiceAccount whose user is given. It returns false if the user is not that of a
// ServiceAccount in the namespace.
func accountOf(user, namespace string) (string, bool) {
	return strings.CutPrefix(user, "system:serviceaccount:"+namespace+":")
}
