#!/usr/bin/env bash
# Builds a Kubernetes API server, kubectl and Helm from their Go modules, for tests; where containerd is, a node's
# programs too. Elsewhere no test can run a node, and its programs would cost as much again.
# The binaries go into a cache folder outside the tree. Its name holds a checksum of this folder's
# module files, so a change of version builds anew and an old cache is never taken for the new one.
#
#   build.sh            build what is missing, print the folder
#   build.sh --where    print the folder, build nothing; exit status 1 when a binary is missing
#
# HUGEPLAN_KUBERNETES_CACHE moves the cache. The first build takes five to ten minutes of one core.
set -eu -o pipefail
cd "$(dirname "$(readlink -f "$0")")"

KUBERNETES=v1.34.2
programs=(etcd kube-apiserver kubectl helm)
if PATH=$PATH:/usr/sbin:/sbin command -v containerd >/dev/null; then
    programs+=(kubelet kube-controller-manager kube-scheduler kube-proxy)
fi

checksum=$(cat go.mod go.sum tools.go etcd/main.go | sha256sum | cut -c1-12)
cache=${HUGEPLAN_KUBERNETES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hugeplan}
folder=$cache/kubernetes-$KUBERNETES-$checksum

missing() {
    for program in "${programs[@]}"; do
        [ -x "$folder/$program" ] || echo "$program"
    done
}

if [ "${1:-}" = --where ]; then
    echo "$folder"
    [ -z "$(missing)" ]
    exit
fi

command -v go >/dev/null || { echo "build.sh: no Go compiler (go) on PATH" >&2; exit 1; }
mkdir -p "$folder"
# One build per folder: a second caller waits for the first and then finds everything there.
exec 9>"$folder/.lock"
flock 9

version=k8s.io/component-base/version
flags="-s -w -X $version.gitVersion=$KUBERNETES -X $version.gitMajor=1 -X $version.gitMinor=34"
flags+=" -X $version.gitTreeState=clean -X helm.sh/helm/v3/internal/version.version=v3.19.2"

# Tests run these programs for a minute: they are compiled quickly rather than well. Without inlined functions and
# debugging data, and with a compiler that seldom collects its garbage, the build takes half the processor time.
compiler="all=-l -dwarf=false"
export GOGC=${GOGC:-400}

for program in $(missing); do
    case $program in
        etcd) package=./etcd ;;
        helm) package=helm.sh/helm/v3/cmd/helm ;;
        *) package=k8s.io/kubernetes/cmd/$program ;;
    esac
    started=$SECONDS
    # The rename makes a binary appear whole or not at all, also when the build is killed.
    CGO_ENABLED=0 go build -mod=readonly -trimpath -gcflags "$compiler" -ldflags "$flags" \
        -o "$folder/.$program.partial" "$package"
    mv "$folder/.$program.partial" "$folder/$program"
    echo "built $program in $((SECONDS - started)) s" >&2
done
echo "$folder"
