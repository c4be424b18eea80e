// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func users() []testCase {
	return []testCase{
		{"forbidden", "forbidden requests have fixed error messages", func(e *env) {
			e.widgets()
			config := rest.CopyConfig(e.Config)
			config.Impersonate = rest.ImpersonationConfig{UserName: "nobody"}
			client, err := dynamic.NewForConfig(config)
			require.NoError(e, err)
			w := client.Resource(e.gvr()).Namespace(e.Namespace)
			_, err = w.Create(e.Ctx, e.widget("a", nil), metav1.CreateOptions{})
			e.fact("create", `403 Forbidden: widgets.GROUP is forbidden: User "nobody" cannot create resource "widgets" in API group "GROUP" in the namespace "NS"`, e.errorText(err))
			_, err = w.Get(e.Ctx, "a", metav1.GetOptions{})
			e.fact("get", `403 Forbidden: widgets.GROUP "a" is forbidden: User "nobody" cannot get resource "widgets" in API group "GROUP" in the namespace "NS"`, e.errorText(err))
			_, err = w.Patch(e.Ctx, "a", "application/merge-patch+json", []byte("{}"), metav1.PatchOptions{}, "status")
			e.fact("status", `403 Forbidden: widgets.GROUP "a" is forbidden: User "nobody" cannot patch resource "widgets/status" in API group "GROUP" in the namespace "NS"`, e.errorText(err))
			_, err = client.Resource(e.gvr()).List(e.Ctx, metav1.ListOptions{})
			e.fact("list everywhere", `403 Forbidden: widgets.GROUP is forbidden: User "nobody" cannot list resource "widgets" in API group "GROUP" at the cluster scope`, e.errorText(err))
			_, err = client.Resource(namespaces).Get(e.Ctx, e.Namespace, metav1.GetOptions{})
			e.fact("a namespace is in itself", `403 Forbidden: namespaces "NS" is forbidden: User "nobody" cannot get resource "namespaces" in API group "" in the namespace "NS"`, e.errorText(err))
			reply := e.do("GET", e.path(""), nil, "Impersonate-Group", "system:masters")
			e.fact("a group without a user", 400, reply.Code)
			reply = e.do("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}`)
			e.fact("a review of one's own rights", true, reply.Code == 201 && reply.Body["status"].(map[string]any)["allowed"] == true)
			reply = e.do("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}`, "Impersonate-User", "nobody")
			e.fact("a review that says no", false, reply.Body["status"].(map[string]any)["allowed"])
		}},
	}
}
