// The grid of a fleet: the server names each new revision, and the page takes the table and its legend anew. Without
// scripts the page reloads itself.
const grid = document.getElementById("grid"), state = document.getElementById("state");
let newest = grid.dataset.revision, loading = false;

async function load() {
	if (loading) return;
	loading = true;
	while (newest !== grid.dataset.revision) {
		const response = await fetch(location.href).catch(() => null);
		if (!response?.ok) break;
		const page = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("grid");
		if (!page) break;
		const focused = document.activeElement?.closest("#grid td")?.title;
		const left = grid.querySelector(".scroll")?.scrollLeft ?? 0;
		grid.replaceChildren(...page.childNodes);
		if (grid.querySelector(".scroll")) grid.querySelector(".scroll").scrollLeft = left;
		if (focused) [...grid.querySelectorAll("td")].find(td => td.title.split(":")[0] === focused.split(":")[0])?.querySelector("a")?.focus();
		const before = grid.dataset.revision;
		grid.dataset.revision = page.dataset.revision;
		if (grid.dataset.revision === before) break;
	}
	loading = false;
}

const source = new EventSource(grid.dataset.from);
source.onopen = () => { state.textContent = "Live."; };
source.onmessage = e => { newest = JSON.parse(e.data).revision ?? newest; load(); };
source.addEventListener("hello", () => {});
source.onerror = () => {
	state.textContent = source.readyState === EventSource.CLOSED ? "Not live: reload the page." : "Waiting for the hub…";
};
