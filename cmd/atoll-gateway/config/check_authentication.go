// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"

	"github.com/atoll-dev/atoll/internal/configfile"
)

// systemPrefix begins the names that Kubernetes reserves.
const systemPrefix = "system:"

func (a *Authentication) check(f *configfile.Faults) {
	const at = "authentication"
	tokens := a.TokenFile != nil || len(a.JWT) > 0 || a.TokenReview != nil
	if a.ClientCertificates == nil && !tokens && a.PassThrough == nil {
		f.Add(at, "has no way to authenticate a caller", "at least one of clientCertificates, tokenFile, jwt, tokenReview and passThrough")
	}
	if a.PassThrough != nil && tokens {
		f.Add(at+".passThrough", "is set beside another way for tokens", "only one of the two: a token that was refused here must not reach the regions")
	}
	if a.ClientCertificates != nil && a.ClientCertificates.CAFile == "" {
		f.Add(at+".clientCertificates.caFile", "is missing", "the path of the authorities' certificates in PEM")
	}
	if a.TokenFile != nil && a.TokenFile.File == "" {
		f.Add(at+".tokenFile.file", "is missing", `the path of a file with lines of token,name,uid,"group,group"`)
	}
	a.TokenReview.check(f)
	a.checkJWT(f)
	a.checkMappings(f)
	for i, key := range a.ExtraKeys {
		if key == "" || strings.ToLower(key) != key {
			f.Add(fmt.Sprintf(at+".extraKeys[%d]", i), fmt.Sprintf("is %q", key), "the key of an extra value, in lower case")
		}
	}
}

func (r *TokenReview) check(f *configfile.Faults) {
	if r == nil {
		return
	}
	const at = "authentication.tokenReview"
	if r.KubeconfigFile != "" && r.Peer != "" {
		f.Add(at, "kubeconfigFile and peer are both set", "at most one")
	}
	if r.Peer != "" {
		checkPeer(f, at+".peer", r.Peer)
	}
	if len(r.Audiences) == 0 {
		f.Add(at+".audiences", "is missing", "the audiences of tokens for this gateway, such as [https://gateway.example.com]; without them, any token for any service would be accepted")
	}
	for i, audience := range r.Audiences {
		if audience == "" {
			f.Add(fmt.Sprintf("%s.audiences[%d]", at, i), "is empty", "an audience")
		}
	}
	f.Between(at+".cacheTTL", r.CacheTTL, 0, 10*time.Second)
	f.Between(at+".timeout", r.Timeout, 100*time.Millisecond, time.Minute)
}

// checkJWT checks the issuers as kube-apiserver does.
func (a *Authentication) checkJWT(f *configfile.Faults) {
	if len(a.JWT) == 0 {
		return
	}
	issuers, err := a.Issuers()
	if err != nil {
		f.Add("authentication.jwt", err.Error(), "the form of jwt in kube-apiserver's AuthenticationConfiguration of apiserver.config.k8s.io/v1")
		return
	}
	compiler := authenticationcel.NewDefaultCompiler()
	all := &apiserver.AuthenticationConfiguration{JWT: issuers}
	for _, fault := range validation.ValidateAuthenticationConfiguration(compiler, all, nil) {
		f.Add("authentication."+fault.Field, strings.Join(strings.Fields(fault.ErrorBody()), " "), "the form of kube-apiserver's AuthenticationConfiguration")
	}
}

// Issuers returns JWT in the form that k8s.io/apiserver uses.
func (a *Authentication) Issuers() ([]apiserver.JWTAuthenticator, error) {
	issuers := make([]apiserver.JWTAuthenticator, len(a.JWT))
	for i := range a.JWT {
		if err := apiserverv1.Convert_v1_JWTAuthenticator_To_apiserver_JWTAuthenticator(&a.JWT[i], &issuers[i], nil); err != nil {
			return nil, fmt.Errorf("[%d] %w", i, err)
		}
	}
	return issuers, nil
}

func (a *Authentication) checkMappings(f *configfile.Faults) {
	seen := map[Mapping]bool{}
	for i, m := range a.Mappings {
		at := fmt.Sprintf("authentication.mappings[%d]", i)
		if (m.User == "") == (m.Group == "") {
			f.Add(at, "user and group are both set, or both missing", "exactly one")
		}
		if m.As == "" {
			f.Add(at+".as", "is missing", "the name in the regions")
		}
		if m.As == systemMasters {
			f.Add(at+".as", "is "+systemMasters+", whose members may do everything in every region, without a role that could be taken away", "another group, bound to the role cluster-admin where that is meant")
		}
		name := Mapping{User: m.User, Group: m.Group}
		if seen[name] {
			f.Add(at, "is a second mapping of the same name", "one mapping per user and group")
		}
		seen[name] = true
	}
}

const systemMasters = systemPrefix + "masters"
