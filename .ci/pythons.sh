# Pythons of this machine that pyproject.toml lists as supported, oldest first, one of each version:
# on the PATH, or pyenv's. Where there is none, python3, whatever it is.
pythons() {
  local version candidate listed=
  for version in $(grep -o ':: 3\.[0-9]*"' pyproject.toml | grep -o '3\.[0-9]*'); do
    for candidate in "python$version" "$(pyenv root 2>/dev/null)/versions/$version".*/bin/python; do
      # A name on the PATH may be a stub of pyenv, and a system's own Python may lack its venv.
      if "$candidate" -c "import sys, ensurepip, venv; sys.exit(not sys.version.startswith('$version.'))" 2>/dev/null; then
        "$candidate" -c 'import sys; print(sys.executable)'
        listed=yes
        break
      fi
    done
  done
  if [ -z "$listed" ]; then command -v python3; fi
}
