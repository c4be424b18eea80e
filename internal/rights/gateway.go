// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
)

// Gateway returns the least ClusterRole in a central plane for a gateway that reads its peers there
// and, with reviews, asks it about tokens. The plane may be a peer of its own. The gateway also
// needs to read the kubeconfigs: see Kubeconfigs.
func Gateway(reviews bool) *rbacv1.ClusterRole {
	r := role("atoll-gateway", rule(masterv1alpha1.Resource("peers"), "list", "watch"), kubeSystem())
	if reviews {
		r.Rules = append(r.Rules, TokenReviews().Rules...)
	}
	return r
}

// TokenReviews returns the least ClusterRole for asking an API server about tokens.
func TokenReviews() *rbacv1.ClusterRole {
	return role("atoll-token-reviews", rule(schema.GroupResource{Group: authenticationv1.GroupName, Resource: "tokenreviews"}, "create"))
}

// Identity returns the least ClusterRole in a peer for a region.Ring: reading the identity of the
// cluster.
func Identity() *rbacv1.ClusterRole { return role("atoll-identity", kubeSystem()) }
