// Local times next to the page's UTC times, where the two differ.
const two = n => String(n).padStart(2, "0");
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
let shown = false;
for (const time of document.querySelectorAll("time[datetime]")) {
	const at = new Date(time.dateTime);
	if (isNaN(at) || at.getTimezoneOffset() === 0) continue;
	const day = at.getDate() === at.getUTCDate() ? "" : `${at.getDate()} ${months[at.getMonth()]} `;
	const local = document.createElement("span"), age = time.closest("td")?.querySelector(".age");
	local.className = "local";
	local.textContent = `${day}${two(at.getHours())}:${two(at.getMinutes())} local`;
	if (age) age.append(" · ", local); else time.after(" (", local, ")");
	shown = true;
}
if (shown) document.getElementById("zone")?.append(`; local times are of ${Intl.DateTimeFormat().resolvedOptions().timeZone}`);
